// The ZooKeeper client: sessions that renew themselves, calls with deadlines, watches that stay.

export {
  type ConnectString,
  DEFAULT_PORT,
  type DigestAuth,
  formatServer,
  parseAuth,
  parseConnectString,
  type ServerAddress,
} from './connect-string.js';
export type { ZooKeeperTls } from './connection/tls.js';
export type { ConnectedState, SessionState } from './session-state.js';
export { checkZnodeName } from './znode-path.js';
export {
  CALL_TIMEOUT_MS as DEFAULT_OPERATION_TIMEOUT_MS,
  type CallOptions,
  type ChildrenListener,
  type CreatedZnode,
  type CreateMode,
  isFault,
  type MultiOperation,
  type ReadingWatch,
  type Watch,
  type Znode,
  type ZnodeData,
  type ZnodeListener,
  type ZnodeReader,
  type ZnodeStat,
  type ZooKeeper,
  ZooKeeperError,
  type ZooKeeperFault,
} from './zookeeper.js';
export {
  DEFAULT_SESSION_TIMEOUT_MS,
  openZooKeeper,
  ZooKeeperClient,
  type ZooKeeperOptions,
} from './zookeeper-client.js';
