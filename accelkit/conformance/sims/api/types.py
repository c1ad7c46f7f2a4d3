"""The fields of the resource API's objects, as a table. Not here: how they are read.

Source:
    k8s.io/api v0.37.2, resource/v1/types.go; apimachinery v0.37.2, pkg/apis/meta/v1/types.go.
    A release that knows fewer fields: gates.py.
"""

TABLE = """
# NAME: field type, ...   * may be absent; [] a list; [a,b] a list with keys; {} a map;
# ! is written even when empty.

ObjectMeta: name string, generateName string, namespace string, selfLink ignored, uid string,
  resourceVersion string, generation int, creationTimestamp *time, deletionTimestamp *time,
  deletionGracePeriodSeconds *int, labels {}string, annotations {}string,
  ownerReferences [uid]OwnerReference, finalizers []string, managedFields ignored
OwnerReference: apiVersion string!, kind string!, name string!, uid string!, controller *bool,
  blockOwnerDeletion *bool

ResourceSlice: metadata ObjectMeta, spec ResourceSliceSpec
ResourceSliceSpec: driver string!, pool ResourcePool, nodeName *string, nodeSelector *NodeSelector,
  allNodes *bool, devices []Device, perDeviceNodeSelection *bool, sharedCounters []CounterSet,
  partitionTypeAttribute *string, skipNodeOperations []string
ResourcePool: name string!, generation int!, resourceSliceCount int!
CounterSet: name string!, counters {}Counter
Counter: value quantity
Device: name string!, attributes {}DeviceAttribute, capacity {}DeviceCapacity,
  consumesCounters []DeviceCounterConsumption, nodeName *string, nodeSelector *NodeSelector,
  allNodes *bool, taints []DeviceTaint, bindsToNode *bool, bindingConditions []string,
  bindingFailureConditions []string, allowMultipleAllocations *bool,
  nodeAllocatableResources {}NodeAllocatableResource,
  nodeAllocatableResourceMappings {}NodeAllocatableResourceMapping
DeviceAttribute: int *int, bool *bool, string *string, version *string, ints []int, bools []bool,
  strings []string, versions []string
DeviceCapacity: value quantity, requestPolicy *CapacityRequestPolicy
CapacityRequestPolicy: default *quantity!, validValues []quantity,
  validRange *CapacityRequestPolicyRange
CapacityRequestPolicyRange: min *quantity, max *quantity, step *quantity
DeviceCounterConsumption: counterSet string!, counters {}Counter, compatibilityGroups []string
DeviceTaint: key string!, value string, effect string!, timeAdded *time
NodeAllocatableResource: mapping *NodeAllocatableMapping, overhead *NodeAllocatableOverhead
NodeAllocatableMapping: capacityKey *string, capacityMultiplier *quantity,
  deviceMultiplier *quantity
NodeAllocatableOverhead: perPod *quantity, perContainer *quantity
NodeAllocatableResourceMapping: capacityKey *string, allocationMultiplier *quantity

NodeSelector: nodeSelectorTerms []NodeSelectorTerm!
NodeSelectorTerm: matchExpressions []NodeSelectorRequirement, matchFields []NodeSelectorRequirement
NodeSelectorRequirement: key string!, operator string!, values []string

DeviceClass: metadata ObjectMeta, spec DeviceClassSpec
DeviceClassSpec: selectors []DeviceSelector, config []DeviceClassConfiguration,
  extendedResourceName *string
DeviceClassConfiguration: opaque *OpaqueDeviceConfiguration
DeviceSelector: cel *CELDeviceSelector
CELDeviceSelector: expression string!
OpaqueDeviceConfiguration: driver string!, parameters raw!

ResourceClaim: metadata ObjectMeta, spec ResourceClaimSpec, status ResourceClaimStatus
ResourceClaimTemplate: metadata ObjectMeta, spec ResourceClaimTemplateSpec
ResourceClaimTemplateSpec: metadata ObjectMeta, spec ResourceClaimSpec
ResourceClaimSpec: devices DeviceClaim
DeviceClaim: requests []DeviceRequest!, constraints []DeviceConstraint,
  config []DeviceClaimConfiguration
DeviceRequest: name string!, exactly *ExactDeviceRequest, firstAvailable []DeviceSubRequest
ExactDeviceRequest: deviceClassName string!, selectors []DeviceSelector, allocationMode string,
  count int, adminAccess *bool, tolerations []DeviceToleration, capacity *CapacityRequirements,
  derivedAttributes []DeviceDerivedAttribute
DeviceSubRequest: name string!, deviceClassName string!, selectors []DeviceSelector,
  allocationMode string, count int, tolerations []DeviceToleration,
  capacity *CapacityRequirements, derivedAttributes []DeviceDerivedAttribute
CapacityRequirements: requests {}quantity
DeviceDerivedAttribute: name string!, expression string!
DeviceToleration: key string, operator string, value string, effect string, tolerationSeconds *int
DeviceConstraint: requests []string, matchAttribute *string, distinctAttribute *string
DeviceClaimConfiguration: requests []string, opaque *OpaqueDeviceConfiguration

ResourceClaimStatus: allocation *AllocationResult,
  reservedFor [uid]ResourceClaimConsumerReference,
  devices [driver,device,pool,shareID]AllocatedDeviceStatus
ResourceClaimConsumerReference: apiGroup string, resource string!, name string!, uid string!
AllocationResult: devices DeviceAllocationResult, nodeSelector *NodeSelector,
  allocationTimestamp *time
DeviceAllocationResult: results []DeviceRequestAllocationResult,
  config []DeviceAllocationConfiguration
DeviceRequestAllocationResult: request string!, driver string!, pool string!, device string!,
  adminAccess *bool, tolerations []DeviceToleration, bindingConditions []string,
  bindingFailureConditions []string, shareID *string, consumedCapacity {}quantity,
  skipNodeOperations []string
DeviceAllocationConfiguration: source string!, requests []string, opaque *OpaqueDeviceConfiguration
AllocatedDeviceStatus: driver string!, pool string!, device string!, shareID *string,
  conditions [type]Condition!, data *raw, networkData *NetworkDeviceData
NetworkDeviceData: interfaceName string, ips []string, hardwareAddress string
Condition: type string!, status string!, observedGeneration int, lastTransitionTime time!,
  reason string!, message string!

DeviceTaintRule: metadata ObjectMeta, spec DeviceTaintRuleSpec, status DeviceTaintRuleStatus
DeviceTaintRuleSpec: deviceSelector *DeviceTaintSelector, taint DeviceTaint
DeviceTaintSelector: driver *string, pool *string, device *string
DeviceTaintRuleStatus: conditions [type]Condition

Namespace: metadata ObjectMeta, spec any, status any
Node: metadata ObjectMeta, spec any, status any
Pod: metadata ObjectMeta, spec any, status any
Event: metadata ObjectMeta, eventTime *microtime!, series *EventSeries, reportingController string,
  reportingInstance string, action string, reason string, regarding any, related *any, note string,
  type string, deprecatedSource any, deprecatedFirstTimestamp *time!,
  deprecatedLastTimestamp *time!, deprecatedCount int
EventSeries: count int!, lastObservedTime *microtime!
"""
