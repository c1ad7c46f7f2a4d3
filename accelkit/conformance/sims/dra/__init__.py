"""What a simulated kubelet does about DRA drivers: registration, claims, health, slices, CDI."""
