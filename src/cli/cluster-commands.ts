import { addCommand, type CommandGroup, checkZooKeeperUse, type Flags, UsageError } from './command-group.js';
import { addSettings, CONSOLE_SETTINGS, INIT_SETTINGS, LOOK_SETTINGS, settingsOf } from './command-settings.js';

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
      const settings = settingsOf(init, io, INIT_SETTINGS);
      checkZooKeeperUse(init, settings);
      if (repair && settings.provider === 'zookeeper') {
        throw new UsageError('--repair is about lease objects in a store: there are none with the provider zookeeper');
      }
      const { initCommand, parseAboveVersion } = await import('./init-command.js');
      end(await initCommand({ repair, aboveVersion: parseAboveVersion(text) }, settings, io));
    });
  addSettings(init, INIT_SETTINGS);
}

function addStatus(group: CommandGroup): void {
  const { io, end } = group;
  const status = addCommand(group, 'status', 'show who holds which node id')
    .option('--json', 'one JSON object, on one line')
    .option('--watch', 'look again every second, until interrupted')
    .option('--all', 'show all node ids, also where they do not fit the terminal')
    .action(async ({ json = false, watch = false, all = false }: Flags<'json' | 'watch' | 'all'>) => {
      const settings = settingsOf(status, io, LOOK_SETTINGS);
      const { statusCommand } = await import('./status-command.js');
      end(await statusCommand({ json, watch, all }, settings, io));
    });
  addSettings(status, LOOK_SETTINGS);
}

function addScale(group: CommandGroup): void {
  const { io, end } = group;
  const scale = addCommand(group, 'scale', 'give the cluster more node ids, with running tasks on it')
    .argument('<n>', 'how many node ids there are to be')
    .option(
      '--wait-timeout <time>',
      'how long to wait for the tasks to make wider unique ids, where those are needed, up to 24h (default: 60s)',
    )
    .action(async (text: string, { waitTimeout }: { waitTimeout?: string }) => {
      const { parseSize, parseWaitTimeout, scaleCommand } = await import('./scale-command.js');
      const options = { size: parseSize(text), waitTimeoutMs: parseWaitTimeout(waitTimeout) };
      const settings = settingsOf(scale, io, LOOK_SETTINGS);
      checkZooKeeperUse(scale, settings);
      if (settings.provider === 'zookeeper') {
        throw new UsageError('scale is about lease objects in a store: with the provider zookeeper node ids grow in number by themselves');
      }
      end(await scaleCommand(options, settings, io));
    });
  addSettings(scale, LOOK_SETTINGS);
}

function addRelease(group: CommandGroup): void {
  const { io, end } = group;
  const release = addCommand(group, 'release', 'take a node id away from its holder')
    .argument('<id>', 'the node id')
    .option('--force', 'do it')
    .action(async (text: string, { force = false }: Flags<'force'>) => {
      const { parseNodeId, releaseCommand, whyForce } = await import('./release-command.js');
      const id = parseNodeId(text);
      const settings = settingsOf(release, io, LOOK_SETTINGS);
      checkZooKeeperUse(release, settings);
      if (!force) throw new UsageError(whyForce(id, settings));
      end(await releaseCommand(id, settings, io));
    });
  addSettings(release, LOOK_SETTINGS);
}

function addDoctor(group: CommandGroup): void {
  const { io, end } = group;
  const doctor = addCommand(group, 'doctor', 'prove that the store keeps its conditions, look for damage, and examine ZooKeeper')
    .option('--json', 'one JSON object, on one line')
    .action(async ({ json = false }: Flags<'json'>) => {
      const settings = settingsOf(doctor, io, LOOK_SETTINGS);
      const { doctorCommand } = await import('./doctor-command.js');
      end(await doctorCommand({ json }, settings, io));
    });
  addSettings(doctor, LOOK_SETTINGS);
}

function addConsole(group: CommandGroup): void {
  const { io, end } = group;
  const console = addCommand(group, 'console', 'show in a browser who holds which node id, as it happens').action(async () => {
    const settings = settingsOf(console, io, CONSOLE_SETTINGS);
    const { consoleCommand } = await import('./console-command.js');
    end(await consoleCommand(settings, io));
  });
  addSettings(console, CONSOLE_SETTINGS);
}
