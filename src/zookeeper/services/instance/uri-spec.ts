import { isIPv6 } from 'node:net';
import { checkArguments, checked, listOf, OBJECT, TEXT } from '../../../core/base/arguments.js';
import { wrongValue } from '../shortened.js';
import { dubboFacts } from './dubbo-instance.js';
import type { ServiceInstance, UriPart, UriSpec } from './service-instance.js';

/** Values of variables, which win over an instance's own fields. */
export type UriVariables = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * Parses a URL with variables: `{scheme}://{address}:{port}/orders`. As in Curator, the spaces around a
 * variable's name do not count, `{}` is empty, and `{[}` and `{]}` are the braces themselves.
 *
 * @param label the setting that it comes from, as its user knows it
 * @throws {ConfigError} when the braces do not match
 */
export function parseUriSpec(text: string, label = 'uriSpec'): UriSpec {
  checkArguments({ label });
  checkArguments({ [label]: text }, { [label]: TEXT });
  const expected = 'each "{" to be closed by a "}" before the next one, as in {scheme}://{address}:{port}';
  const parts: UriPart[] = [];
  let variable = false;
  for (const [token] of text.matchAll(/[{}]|[^{}]+/g)) {
    if (token !== '{' && token !== '}') parts.push({ value: variable ? token.trim() : token, variable });
    else if (variable === (token === '{')) throw wrongValue(label, text, expected);
    else variable = token === '{';
  }
  if (variable) throw wrongValue(label, text, expected);
  return { parts };
}

/**
 * The text that Curator makes of it. The variables are `scheme` (`https` whenever there is an sslPort, though
 * `port` stays the plain one), `name`, `id`, `address`, `port`, `ssl-port`, `registration-time-utc` and
 * `service-type` (in lower case). A variable without a value is empty: the text need not be a URL.
 *
 * @param variables further variables, by their names; they win over the instance's own
 */
export function buildUri(spec: UriSpec, instance: ServiceInstance, variables: UriVariables = {}): string {
  checkArguments({ variables });
  checked(spec, { parts: listOf(OBJECT) }, 'spec');
  checked(instance, { serviceType: TEXT }, 'instance', []);
  const given = Object.entries(variables).filter(([, value]) => value !== undefined);
  const values = new Map([...Object.entries(ownVariables(instance)), ...given]);
  return spec.parts
    .map(({ value, variable }) => (variable ? String(values.get(value) ?? '') : value))
    .join('');
}

/**
 * The URL of an instance: from its uriSpec, otherwise the first endpoint of a Dubbo application
 * (`dubbo://10.0.0.7:20880`), otherwise `https` with its sslPort, otherwise `http` with its port. An IPv6 address gets its brackets, which Curator leaves to the uriSpec; `{port}` of an instance
 * without a port is its sslPort, where Curator has nothing.
 *
 * @returns undefined when the instance has no address, or no port and no uriSpec
 */
export function instanceUrl(instance: ServiceInstance, variables: UriVariables = {}): string | undefined {
  checkArguments({ instance, variables });
  const { address, port, sslPort, uriSpec } = instance;
  if (uriSpec !== undefined) {
    // An instance that has only a port for TLS would leave the usual `{port}` empty.
    const url = buildUri(bracketed(uriSpec, address), instance, {
      ...(port === undefined && { port: sslPort }),
      ...variables,
    });
    // Curator can write one without parts.
    if (url !== '') return url;
  }
  if (address === undefined || address === '') return undefined;
  const host = isIPv6(address) ? `[${address}]` : address;
  const http = sslPort === undefined ? { protocol: 'http', port } : { protocol: 'https', port: sslPort };
  const { protocol, port: at } = dubboFacts(instance)?.endpoints[0] ?? http;
  return at === undefined ? undefined : `${protocol}://${host}:${at}`;
}

/**
 * Spring's own uriSpec, or for TLS one that leads to the right port. Without one the URI that Spring has of an
 * instance is empty.
 */
export function springUriSpec({
  address,
  sslPort,
}: Partial<Pick<ServiceInstance, 'address' | 'sslPort'>>): UriSpec {
  const port = sslPort === undefined ? 'port' : 'ssl-port';
  return bracketed(parseUriSpec(`{scheme}://{address}:{${port}}`), address);
}

/** The same with brackets around an IPv6 address, unless it has them already. */
function bracketed(spec: UriSpec, address: string | undefined): UriSpec {
  if (address === undefined || !isIPv6(address)) return spec;
  const parts = spec.parts.flatMap((part, index): UriPart[] => {
    const isAddress = part.variable && part.value === 'address';
    if (!isAddress || spec.parts[index - 1]?.value.endsWith('[')) return [part];
    return [{ value: '[', variable: false }, part, { value: ']', variable: false }];
  });
  return { parts };
}

/** The variables that an instance has itself. */
function ownVariables({
  name,
  id,
  address,
  port,
  sslPort,
  registrationTimeUTC,
  serviceType,
}: ServiceInstance): UriVariables {
  return {
    ...{ '[': '{', ']': '}', scheme: sslPort === undefined ? 'http' : 'https' },
    ...{ name, id, address, port, 'ssl-port': sslPort },
    ...{ 'registration-time-utc': registrationTimeUTC, 'service-type': serviceType.toLowerCase() },
  };
}
