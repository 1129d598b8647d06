// Leases in DynamoDB: `nodelease/store/dynamodb`.

export { type DynamoDbStoreOptions, openDynamoDbStore } from './open-dynamodb-store.js';
