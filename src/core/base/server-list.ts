/** Servers, and the path that belongs to all of them. */
interface ServerList {
  /** As they were given, none of them empty. */
  readonly servers: readonly string[];
  /** With its slash in front; empty where there is none. */
  readonly path: string;
}

/**
 * Takes `SERVER[,SERVER]…[/PATH]` apart. The same path behind each server is one path, as people write it;
 * any other mixture would be a path on some of the servers only.
 *
 * @param what the path is called
 * @returns the problem, if there is one, as the rest of a sentence
 */
export function splitServers(text: string, what: string): ServerList | string {
  if (text.includes(';')) return 'commas separate servers, not semicolons';
  const items = text.split(',').map((item) => {
    const slash = item.includes('/') ? item.indexOf('/') : item.length;
    return { server: item.slice(0, slash), path: item.slice(slash) };
  });
  if (items.some(({ server }) => server === '')) return 'a server is empty';
  const path = items.at(-1)?.path ?? '';
  const others = items.slice(0, -1);
  if (others.some((each) => each.path !== '') && others.some((each) => each.path !== path))
    return `the ${what} is given once, behind the last server, or is the same behind each, and has no comma`;
  return { servers: items.map(({ server }) => server), path };
}
