// Leases in Azure Blob Storage: `nodelease/store/azure`.

export { type AzureContainer, AzureLeaseStore, type AzureLeaseStoreOptions } from './azure-lease-store.js';
export { type AzureStoreOptions, openAzureStore } from './open-azure-store.js';
