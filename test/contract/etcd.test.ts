import { inject } from 'vitest';
import { newEtcdStore } from '../support/etcd.js';
import { etcdContract } from './etcd-contract.js';

etcdContract('EtcdLeaseStore', () => newEtcdStore(inject('etcd')));
