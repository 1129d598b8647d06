import type { StoreCallOptions, StoreFact } from '../lease-store.js';
import type { EtcdRequest } from './classify-reply.js';
import type { EtcdGateway } from './gateway.js';

/**
 * Asks each of the servers for its version, by itself, and the cluster for its members. Failures are told,
 * and not thrown.
 */
export async function describeServers(
  gateway: EtcdGateway,
  request: EtcdRequest,
  { endpoints }: { readonly endpoints: readonly string[] },
  options: StoreCallOptions | undefined,
): Promise<readonly StoreFact[]> {
  const versions = await Promise.all(
    endpoints.map((endpoint) =>
      gateway.version(request, endpoint, options).then(
        (version) => ({ isUp: true, text: `${new URL(endpoint).host} ${version}` }),
        (error: Error) => ({ isUp: false, text: error.message.slice(`${request.url}: `.length) }),
      ),
    ),
  );
  const members = await gateway
    .call(request, 'cluster/member/list', {}, { ...options, repeatable: true })
    .then(
      ({ body }) => (Array.isArray(body.members) ? `${body.members.length} in the cluster` : undefined),
      // Newer versions tell it to administrators alone.
      () => undefined,
    );
  const detail = [...versions.map(({ text }) => text), ...(members === undefined ? [] : [members])].join(
    ', ',
  );
  return [
    {
      id: 'etcd-servers',
      title: 'etcd servers',
      status: versions.every(({ isUp }) => isUp) ? 'ok' : 'warning',
      detail,
    },
    {
      id: 'take-over',
      title: 'take-over',
      status: 'ok',
      detail:
        'by observed age; a task that starts when all others have died takes a lease once etcd has removed its mark, 2 to 4 s after duration and grace',
    },
  ];
}
