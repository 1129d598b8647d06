import type { Certificate } from '../certificates.js';
import { freePort } from './free-ports.js';
import { startZooKeeperProcess, type ZooKeeperProcess } from './zookeeper-process.js';

/** How to start a server that takes connections with TLS in addition to those without. */
export interface SecureZooKeeperOptions {
  readonly certificate: Certificate;
  /** The file of the CA that clients' certificates are to be of. */
  readonly ca: string;
  /** Whether clients have to show a certificate, may, or are not asked. */
  readonly clientAuth: 'need' | 'want' | 'none';
}

/** A server with Netty, the port without TLS being the process's own. */
export async function startSecureZooKeeper({
  certificate,
  ca,
  clientAuth,
}: SecureZooKeeperOptions): Promise<ZooKeeperProcess & { readonly securePort: number }> {
  const securePort = await freePort();
  const server = await startZooKeeperProcess({
    settings: {
      serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
      secureClientPort: String(securePort),
      secureClientPortAddress: '127.0.0.1',
      'ssl.keyStore.location': certificate.both,
      'ssl.keyStore.type': 'PEM',
      'ssl.trustStore.location': ca,
      'ssl.trustStore.type': 'PEM',
      'ssl.clientAuth': clientAuth,
      'ssl.protocol': 'TLSv1.3',
      'ssl.enabledProtocols': 'TLSv1.3,TLSv1.2',
      // Its own list has none of TLS 1.3.
      'ssl.ciphersuites': 'TLS_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
    },
  });
  return Object.assign(server, { securePort });
}
