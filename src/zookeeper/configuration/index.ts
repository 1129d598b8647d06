// Configuration in ZooKeeper, in the layout of Spring Cloud Zookeeper Config: published in revisions,
// followed as it changes.

export {
  type Configuration,
  type ConfigurationChange,
  type ConfigurationEvent,
  type ConfigurationOptions,
  openConfiguration,
} from './configuration.js';
export { followedConfigurations } from './fleet.js';
export type { FleetReport, NodeRevisions, Revisions } from './fleet-report.js';
export { ConfigHistoryError, type KeyChange, type Revision } from './history.js';
export type { ConfigName } from './layout.js';
export {
  ConfigConflictError,
  type ConfigPublisher,
  type ContextState,
  configPublisher,
  type PublisherOptions,
  type PublishOptions,
  type WantedChange,
} from './publisher.js';
export type { ConfigValue } from './read-contexts.js';
export {
  InvalidConfigurationError,
  type SchemaIssue,
  type SchemaResult,
  type StandardSchema,
} from './standard-schema.js';
