import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';

/**
 * The address under which others most likely reach this host: its first that is neither internal nor
 * link-local, IPv4 before IPv6; 127.0.0.1 if there is none. Not guaranteed: that it is the right one of
 * several, or reachable from outside, as behind a container's published ports.
 */
export function hostAddress(
  interfaces: () => NodeJS.Dict<readonly NetworkInterfaceInfo[]> = networkInterfaces,
): string {
  const all = Object.values(interfaces()).flatMap((each) => each ?? []);
  const reachable = all.filter(({ internal, address }) => !internal && !isLinkLocal(address));
  const first = reachable.find(({ family }) => family === 'IPv4') ?? reachable[0];
  return first?.address ?? '127.0.0.1';
}

/** 169.254.0.0/16 and fe80::/10. */
function isLinkLocal(address: string): boolean {
  return address.startsWith('169.254.') || /^fe[89ab][0-9a-f]:/i.test(address);
}
