/** By name: the host and the ports of a service, and the parts of a port. */
const BY_NAME = /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/;
/** `NODELEASE_PORT` can be a setting as well. */
const PORT = /_PORT$/;
const ADDRESS = /^(tcp|udp|sctp):\/\//;

/**
 * Whether an environment variable is one that Kubernetes gives every pod of a namespace, for each service in
 * it: a service named `nodelease` makes `NODELEASE_PORT=tcp://10.0.0.1:80`. Docker's links make the same.
 *
 * Source: https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 */
export function isServiceLink(name: string, text: string): boolean {
  return BY_NAME.test(name) || (PORT.test(name) && ADDRESS.test(text));
}
