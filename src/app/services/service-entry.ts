import type { ServiceEntry } from '../../node/wire/entries-wire.js';
import type { Znode } from '../../zookeeper/client/zookeeper.js';
import { dubboText, isDubboFolder } from '../../zookeeper/services/instance/dubbo-instance.js';
import { decodeInstance } from '../../zookeeper/services/instance/instance-codec.js';
import { claimIn } from '../../zookeeper/services/instance/lease-claim.js';
import { instanceState, jsonPayload } from '../../zookeeper/services/instance/payload-codec.js';
import { shortened } from '../../zookeeper/services/shortened.js';
import { excerpt, MAX_TEXT } from '../http/console/excerpt.js';

/** Decodes a znode below a service. Never throws. */
export function readEntry(service: string, id: string, { data, stat }: Znode): Partial<ServiceEntry> {
  const sessionId = stat.owner ?? null;
  const changedAt = new Date(stat.modifiedAt).toISOString();
  const decoded = decodeInstance({ name: service, id, data }, jsonPayload);
  if (decoded.status === 'unreadable')
    return {
      sessionId,
      changedAt,
      text: excerpt(data.toString('utf8', 0, 4 * MAX_TEXT)),
      ...(isDubboFolder(id) ? { isDubboFolder: true } : { problem: decoded.problem }),
    };
  const { name, id: ownId, address, port = null, sslPort = null, serviceType, payload } = decoded.instance;
  const dubbo = dubboText(decoded.instance);
  const isElsewhere = name !== service || !id.startsWith(ownId);
  return {
    instance: {
      id: excerpt(ownId),
      address: address === undefined ? null : excerpt(address),
      port,
      sslPort,
      serviceType,
      state: instanceState(decoded.instance),
      claim: claimIn(payload),
      ...(dubbo && { dubbo: excerpt(dubbo) }),
    },
    text: payload === undefined ? null : excerpt(JSON.stringify(payload)),
    sessionId,
    changedAt,
    problem: isElsewhere
      ? `says that it is ${shortened(name)}/${shortened(ownId)}`
      : stat.childCount > 0
        ? 'has znodes below it'
        : null,
  };
}
