// Leases in DynamoDB: `nodelease/store/dynamodb`.

export {
  type DynamoDbCommand,
  DynamoDbLeaseStore,
  type DynamoDbLeaseStoreOptions,
  type DynamoDbOperation,
  type DynamoDbRequests,
} from './dynamodb-lease-store.js';
export { type DynamoDbStoreOptions, openDynamoDbStore } from './open-dynamodb-store.js';
