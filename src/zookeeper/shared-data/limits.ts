import { bytesOf, type MultiOperation } from '../client/zookeeper.js';
import { SharedDataError } from './shared-data-error.js';

/**
 * ZooKeeper's default limit of a packet in bytes (`jute.maxbuffer`), less room for its header. A server
 * closes the connection beyond it.
 */
const PACKET_BYTES = 0xfffff - 1_024;
/**
 * What one operation takes in addition to its path and data, its access list included, and what one name of
 * a listing takes in addition to its text.
 */
const OPERATION_BYTES = 64;
const NAME_BYTES = 4;

/** @throws {SharedDataError} `too-large` where that number of children with such names cannot be listed */
export function checkListing(path: string, name: string, count: number): void {
  const bytes = count * (Buffer.byteLength(name) + NAME_BYTES);
  checkPacket(path, bytes, `${count} elements cannot be listed: that takes ${bytes} bytes`);
}

/** @throws {SharedDataError} `too-large` where the operations do not fit in one request */
export function checkRequest(path: string, operations: readonly MultiOperation[]): void {
  const bytes = bytesOf(operations, OPERATION_BYTES);
  checkPacket(path, bytes, `this change takes ${bytes} bytes in one request`);
}

function checkPacket(path: string, bytes: number, problem: string): void {
  if (bytes <= PACKET_BYTES) return;
  const text = `${path}: ${problem}, and ZooKeeper's packets hold ${PACKET_BYTES} (jute.maxbuffer)`;
  throw new SharedDataError(text, 'too-large', path);
}
