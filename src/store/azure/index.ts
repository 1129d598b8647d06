// Leases in Azure Blob Storage: `nodelease/store/azure`.

export {
  type AzureBlob,
  AzureLeaseStore,
  type AzureLeaseStoreOptions,
  type AzurePage,
  type AzureReply,
  type AzureRequests,
} from './azure-lease-store.js';
export { type AzureStoreOptions, openAzureStore } from './open-azure-store.js';
