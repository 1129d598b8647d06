import { FollowedInstances, type FollowedInstancesOptions, type InstanceSource } from '../services/instance-source.js';
import type { ServiceInstance } from '../services/service-instance.js';
import { pathProblem } from '../zookeeper/znode-path.js';
import type { Watch, ZooKeeper } from '../zookeeper/zookeeper.js';

export interface JoinedInstancesOptions<P> extends FollowedInstancesOptions {
  readonly zookeeper: Pick<ZooKeeper, 'state' | 'onState' | 'watchChildren'>;
  /** The znode each of whose children has instances below it; it need not exist. */
  readonly path: string;
  /** Begins to follow the instances below a child. `onRefused` is to be called when the servers refuse to list them: they are gone on without. */
  readonly open: (name: string, onRefused: () => void) => InstanceSource<P>;
}

interface Part<P> {
  readonly name: string;
  readonly source: InstanceSource<P>;
  /** A child whose instances the servers refuse to let be listed has none to wait for. */
  status: 'unread' | 'refused' | 'read';
}

/**
 * The instances below all children of a znode, one child's after the other's, in the order of the children's names. A child that the servers
 * refuse to let be read hides none of the others: it counts as empty until it has been read.
 */
export class JoinedInstances<P> extends FollowedInstances<P> {
  #parts: Part<P>[] = [];
  #children: Watch | undefined;
  #read = false;
  #whole = false;

  constructor(private readonly options: JoinedInstancesOptions<P>) {
    super(options);
    this.start();
  }

  /** Since when any of them is not followed, also the instances below a child that has just appeared. One that has always been refused does not count. */
  override get stale(): { readonly since: number } | undefined {
    const followed = this.#parts.filter(({ status }) => status !== 'refused');
    const since = [this.staleSince, ...followed.map(({ source }) => source.stale?.since)].filter((each) => each !== undefined);
    return since.length === 0 ? undefined : { since: Math.min(...since) };
  }

  protected override watch(): void {
    this.#children?.close();
    this.#children = this.options.zookeeper.watchChildren(this.options.path, (names) => this.#follow(names ?? []));
  }

  protected override stop(): void {
    this.#children?.close();
    for (const { source } of this.#parts) source.close();
  }

  protected override collect(): readonly ServiceInstance<P>[] | undefined {
    this.#whole ||= this.#read && this.#parts.every(({ status }) => status !== 'unread');
    return this.#whole ? this.#parts.flatMap(({ source }) => source.instances) : undefined;
  }

  #follow(names: readonly string[]): void {
    const present = new Set(names);
    for (const { name, source } of this.#parts) if (!present.has(name)) source.close();
    const parts = this.#parts.filter(({ name }) => present.has(name));
    const known = new Set(parts.map(({ name }) => name));
    for (const name of present)
      if (!known.has(name) && pathProblem(`${this.options.path}/${name}`) === undefined) parts.push(this.#open(name));
    this.#parts = parts.sort((a, b) => (a.name < b.name ? -1 : 1));
    this.#read = true;
    this.staleSince = undefined;
    this.tellSoon();
  }

  #open(name: string): Part<P> {
    const onRefused = () => {
      if (part.status !== 'unread') return;
      part.status = 'refused';
      this.tellSoon();
    };
    const part: Part<P> = { name, source: this.options.open(name, onRefused), status: 'unread' };
    part.source.onChange(() => this.tellSoon());
    void part.source.ready.then(() => {
      part.status = 'read';
      this.tellSoon();
    });
    return part;
  }
}
