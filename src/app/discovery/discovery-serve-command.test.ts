import { describe, expect, it } from 'vitest';
import { ZooKeeperError } from '../../zookeeper/client/zookeeper-error.js';
import { zookeeperLog } from '../kit/log/zookeeper-log.js';
import { discoveryServeLog } from './discovery-serve-command.js';

function recorder() {
  const lines: string[] = [];
  const at = (level: string) => (first: unknown, second?: string) =>
    void lines.push(`${level} ${second ?? String(first)}`);
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

describe('what discovery serve logs', () => {
  it('says once that ZooKeeper is away, however often it is tried, and once that it is back', () => {
    const log = recorder();
    const listener = zookeeperLog(log, 'zoo:2181');
    listener({ status: 'connecting' });
    for (let i = 0; i < 3; i += 1) listener({ status: 'connecting', problem: 'no answer' });
    listener({ status: 'connected', sessionId: '1', timeoutMs: 1, server: 's' });
    listener({ status: 'suspended', sessionId: '1', timeoutMs: 1, problem: 'it hung up' });
    listener({ status: 'expired', sessionId: '1' });
    listener({ status: 'connecting', problem: 'no answer' });
    listener({ status: 'connected', sessionId: '2', timeoutMs: 1, server: 's' });
    expect(log.lines).toEqual([
      'warn no connection to zoo:2181: no answer',
      'info connected to zoo:2181',
      'warn no connection to zoo:2181: it hung up',
      'warn session 1 has expired',
      'info connected to zoo:2181',
    ]);
  });

  it('does not say for every request that ZooKeeper is away, and says what a person should look into', () => {
    const log = recorder();
    const listener = discoveryServeLog(log);
    const failed = (fault: 'timeout' | 'no-auth') => new ZooKeeperError(fault, fault, 'unknown');
    listener({ type: 'request-failed', request: 'GET /v1/service', error: failed('timeout') });
    listener({ type: 'request-failed', request: 'GET /v1/service', error: failed('no-auth') });
    listener({
      type: 'request-failed',
      request: 'GET /v1/service',
      error: new TypeError('x is not a function'),
    });
    listener({ type: 'unreadable', path: '/services/orders/2', problem: 'is empty' });
    expect(log.lines.map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([
      'debug GET',
      'warn GET',
      'error GET',
      'warn /services/orders/2',
    ]);
  });
});
