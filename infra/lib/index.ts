// The constructs, for people's own CDK apps.

export { type DeploymentWindow, deploymentWindow } from './deployment-window.js';
export { LeaseAlarms, type LeaseAlarmsProps } from './lease-alarms.js';
export { LeaseBucket, type LeaseBucketProps } from './lease-bucket.js';
export { LeaseJob, type LeaseJobProps } from './lease-job.js';
export {
  grantLeases,
  grantProtection,
  type LeasePolicyProps,
  type LeaseRights,
  leaseStatements,
} from './lease-policy.js';
export type { LeaseWork, RunWork, SidecarWork } from './lease-work.js';
export { type LogEvent, logEvents } from './log-events.js';
export { NodeLeaseService, type NodeLeaseServiceProps } from './node-lease-service.js';
export { NodeLeaseStack, type NodeLeaseStackProps } from './node-lease-stack.js';
export { SettingError } from './setting-error.js';
export { checkStopTiming, type StopTiming, WIND_UP_MS } from './stop-timing.js';
