// Leases in DynamoDB: `nodelease/store/dynamodb`.

export { type DynamoDbStoreOptions, openDynamoDbStore } from './dynamodb-lease-store.js';
