import type { Znode } from '../zookeeper/zookeeper.js';
import { type Assignment, decodeAssignment } from './assignment.js';
import type { DecodedInstance } from './services/instance-codec.js';

/** An endpoint may be announced with a large payload of its own, but not with one that would fill the memory of all who look for it. */
const MAX_BYTES = 1_048_576;

/**
 * A node that offers an endpoint, as an instance of it: the endpoint is its name, the reference its id, and the payload is the
 * whole assignment, fields of the node's own included. One that tells no address has none. Never throws.
 *
 * @param ref the znode's name, such as `orders:7`
 */
export function decodeEndpoint(endpoint: string, ref: string, { data, stat }: Znode): DecodedInstance<Assignment> {
  if (data.length > MAX_BYTES) return { status: 'unreadable', problem: `holds more than ${MAX_BYTES} bytes` };
  const assignment = decodeAssignment(data);
  if (assignment === undefined) return { status: 'unreadable', problem: 'does not tell task, node id and version' };
  const { address, port, sslPort } = assignment;
  return {
    status: 'readable',
    instance: {
      name: endpoint,
      id: ref,
      address: typeof address === 'string' && address !== '' ? address : undefined,
      port: portOf(port),
      sslPort: portOf(sslPort),
      payload: assignment,
      registrationTimeUTC: stat.createdAt,
      serviceType: stat.owner === undefined ? 'PERMANENT' : 'DYNAMIC',
      uriSpec: undefined,
      enabled: true,
    },
  };
}

function portOf(value: unknown): number | undefined {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 65_535 ? (value as number) : undefined;
}
