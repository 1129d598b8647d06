import { addCommand, type CommandGroup, checkZooKeeperUse, type Flags, UsageError } from './command-group.js';
import { addSettings, fixedNodeId, settingsOf } from './command-settings.js';

/** Adds the commands that look at a cluster, or change it: `init`, `status`, `scale`, `release`, `doctor`, `console`. */
export function addClusterCommands(group: CommandGroup): void {
  addInit(group);
  addStatus(group);
  addScale(group);
  addRelease(group);
  addDoctor(group);
  addConsole(group);
}

function addInit(group: CommandGroup): void {
  const { io, end } = group;
  const init = addCommand(group, 'init', 'create the settings and all lease objects of a cluster')
    .option('--repair', 'restore damaged lease objects')
    .option('--above-version <n>', 'with --repair: a version that no tenure of a damaged node id has exceeded')
    .action(async ({ repair = false, aboveVersion: text }: { repair?: boolean; aboveVersion?: string }) => {
      if (text !== undefined && !repair) throw new UsageError('--above-version is of use with --repair only');
      const settings = settingsOf(init, io);
      checkZooKeeperUse(init, settings);
      if (repair && settings.provider === 'zookeeper') {
        throw new UsageError('--repair is about lease objects in a store: there are none with the provider zookeeper');
      }
      const { initCommand, parseAboveVersion } = await import('./init-command.js');
      end(await initCommand({ repair, aboveVersion: parseAboveVersion(text) }, settings, io));
    });
  addSettings(init);
}

type StatusFlags = Flags<'json' | 'watch' | 'all' | 'held' | 'free'> & { readonly from?: string; readonly limit?: string };

function addStatus(group: CommandGroup): void {
  const { io, end } = group;
  const status = addCommand(group, 'status', 'show who holds which node id')
    .option('--json', 'one JSON object, on one line')
    .option('--watch', 'look again every second, until interrupted')
    .option('--all', 'show all node ids, also where they do not fit the terminal, and of a cluster of more than 500')
    .option('--from <id>', 'show the node ids from this one on')
    .option('--limit <n>', 'show so many node ids of a large cluster (default: what fits the terminal, else 100)')
    .option('--held', 'show only those that are held')
    .option('--free', 'show only those that are free')
    .action(async ({ json = false, watch = false, all = false, held = false, free = false, ...page }: StatusFlags) => {
      if (held && free) throw new UsageError('--held and --free cannot be combined');
      const isPage = page.from !== undefined || page.limit !== undefined;
      if (all && isPage) throw new UsageError('--all shows everything: --from and --limit cannot be combined with it');
      const settings = settingsOf(status, io);
      if (settings.provider === 'zookeeper' && (isPage || held || free)) {
        throw new UsageError(
          '--from, --limit, --held and --free are about lease objects in a store: there are none with the provider zookeeper',
        );
      }
      const { parseFrom, parseLimit, statusCommand } = await import('../status/status-command.js');
      const only = held ? 'held' : free ? 'free' : undefined;
      const options = { json, watch, all, only, from: parseFrom(page.from), limit: parseLimit(page.limit) } as const;
      end(await statusCommand(options, settings, io));
    });
  addSettings(status);
}

function addScale(group: CommandGroup): void {
  const { io, end } = group;
  const scale = addCommand(group, 'scale', 'give the cluster more node ids, or fewer, with running tasks on it')
    .argument('<n>', 'how many node ids there are to be')
    .option(
      '--wait-timeout <time>',
      'how long to wait for the tasks to make wider unique ids, where those are needed, up to 24h (default: 60s)',
    )
    .option(
      '--drain-timeout <time>',
      'how long the tasks have to give node ids back that the cluster gives up, before those are taken from them, 0s to 24h (default: 10m; with --settings-interval that much more: so late they learn of it)',
    )
    .action(async (text: string, { waitTimeout, drainTimeout }: { waitTimeout?: string; drainTimeout?: string }) => {
      const { checkOwnId, parseDrainTimeout, parseSize, parseWaitTimeout, scaleCommand } = await import('./scale-command.js');
      const options = {
        size: parseSize(text),
        waitTimeoutMs: parseWaitTimeout(waitTimeout),
        drainTimeoutMs: parseDrainTimeout(drainTimeout),
      };
      checkOwnId(options.size, fixedNodeId(io));
      const settings = settingsOf(scale, io);
      if (settings.provider === 'zookeeper') {
        throw new UsageError('scale is about lease objects in a store: with the provider zookeeper node ids grow in number by themselves');
      }
      end(await scaleCommand(options, settings, io));
    });
  addSettings(scale);
}

function addRelease(group: CommandGroup): void {
  const { io, end } = group;
  const release = addCommand(group, 'release', 'take a node id away from its holder')
    .argument('<id>', 'the node id')
    .option('--force', 'do it')
    .action(async (text: string, { force = false }: Flags<'force'>) => {
      const { parseNodeId, releaseCommand, whyForce } = await import('./release-command.js');
      const id = parseNodeId(text);
      const settings = settingsOf(release, io);
      checkZooKeeperUse(release, settings);
      if (!force) throw new UsageError(whyForce(id, settings));
      end(await releaseCommand(id, settings, io));
    });
  addSettings(release);
}

type DoctorFlags = Flags<'json' | 'accept'> & { readonly putPrice?: string; readonly getPrice?: string };

function addDoctor(group: CommandGroup): void {
  const { io, end } = group;
  const doctor = addCommand(group, 'doctor', 'prove that the store keeps its conditions, look for damage, and examine ZooKeeper')
    .option('--json', 'one JSON object, on one line')
    .option('--accept', 'where an earlier probe has found the store wanting and this far longer one finds no fault: have it used again')
    .option('--put-price <dollars>', 'what 1,000 PUT or LIST requests cost (default: 0.005, S3 Standard in us-east-1)')
    .option('--get-price <dollars>', 'what 1,000 GET requests cost (default: 0.0004)')
    .action(async ({ json = false, accept = false, putPrice, getPrice }: DoctorFlags) => {
      const settings = settingsOf(doctor, io);
      const { parsePrices } = await import('../doctor/cost-finding.js');
      const prices = parsePrices(putPrice, getPrice);
      if (settings.provider === 'zookeeper' && prices !== undefined) {
        throw new UsageError('--put-price and --get-price are about requests to a store: there are none with the provider zookeeper');
      }
      if (settings.provider === 'zookeeper' && accept) {
        throw new UsageError('--accept is about a store: there is none with the provider zookeeper');
      }
      const { doctorCommand } = await import('../doctor/doctor-command.js');
      end(await doctorCommand({ json, accept, prices }, settings, io));
    });
  addSettings(doctor);
}

function addConsole(group: CommandGroup): void {
  const { io, end } = group;
  const console = addCommand(group, 'console', 'show in a browser who holds which node id, as it happens').action(async () => {
    const settings = settingsOf(console, io);
    const { consoleCommand } = await import('./console-command.js');
    end(await consoleCommand(settings, io));
  });
  addSettings(console);
}
