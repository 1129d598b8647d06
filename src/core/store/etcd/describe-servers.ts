import type { StoreCallOptions, StoreFact } from '../lease-store.js';
import type { EtcdRequest } from './classify-reply.js';
import type { EtcdGateway } from './gateway.js';

/**
 * Asks each of the servers for its version, and the cluster for its members. Failures are reported, and not
 * thrown.
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
      ({ body }) => (Array.isArray(body.members) ? [`${body.members.length} in the cluster`] : []),
      // Newer versions report it to administrators alone.
      () => [],
    );
  return [
    {
      id: 'etcd-servers',
      title: 'etcd servers',
      status: versions.every(({ isUp }) => isUp) ? 'ok' : 'warning',
      detail: [...versions.map(({ text }) => text), ...members].join(', '),
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
