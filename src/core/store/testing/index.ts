// What every store has to keep, as checks for any test runner: `nodelease/store/testing`.

export { type ContractCheck, type LeaseStoreContractOptions, leaseStoreContract } from './contract.js';
