import { browserClock } from '../page-clock.js';
import {
  addressText,
  countText,
  leaseText,
  type SeenService,
  ServicesModel,
  servicesIn,
  stateOf,
} from '../services-model.js';
import type { ServiceEntry } from '../services-wire.js';
import { button, type Child, find, make, mark, setText } from './dom.js';
import { type Folder, Folders, type RowCells } from './folders.js';
import { Frame } from './frame.js';

/** What may be done with an instance. */
type Act = 'Enable' | 'Disable' | 'Remove';

/** With more instances than this altogether the services are closed at first. */
const MAX_OPEN = 100;
/** A text that is shown without having to be opened, in characters. */
const SHORT = 60;
const MARKS = { enabled: 'held', disabled: 'free', 'out of service': 'overdue', damaged: 'damaged' } as const;
const API = 'api/services';
const WARNING =
  'Its clients do not find it any more. A live task of nodelease registers it again at once; another program may do so only in its next session.';

/** The page of services: draws what the stream tells, and asks for changes. */
class ServicesPage {
  readonly #model = new ServicesModel(browserClock);
  readonly #list = find('services');
  readonly #folders = new Folders(
    this.#list,
    ['Instance', 'Address', 'Lease', 'Payload', ''],
    (entry: ServiceEntry, path) => this.#row(entry, path),
  );
  readonly #frame: Frame = new Frame({
    stream: API,
    what: 'the services',
    model: this.#model,
    draw: () => this.#draw(),
    onFilter: (text) => this.#folders.filter(text),
    focusFound: () => this.#list.querySelector<HTMLElement>('details:not([hidden]) summary')?.focus(),
    onEscape: () => {
      this.#frame.filter = '';
    },
  });
  #wasWhole = false;

  /** Goes on while the page is open. */
  start(): void {
    document.title = 'services · nodelease';
    if (location.pathname.endsWith('/services')) this.#frame.link('./', 'Node ids');
    this.#frame.start();
  }

  #draw(): void {
    const { about, store } = this.#model;
    for (const text of this.#model.takeSpoken()) this.#frame.announcer.say(text);
    this.#wasWhole ||= store.isWhole;
    if (about === undefined) return;
    setText(
      find('access'),
      about.writes ? 'Changes need the token' : 'Read-only: started without --allow-writes',
    );
    const where = `${about.zookeeper} ${about.path}`;
    // How many there are decides what is open at first.
    if (!this.#wasWhole) setText(find('settings'), `${where} · reading …`);
    if (!this.#wasWhole || !this.#model.takeChange()) return;
    const services = servicesIn(this.#model.entries);
    const count = this.#model.entries.size - services.length;
    this.#folders.show(services.map((service) => folderOf(service, count <= MAX_OPEN)));
    const more = store.isPartial ? ' There are more: only 10,000 are followed.' : '';
    setText(
      find('settings'),
      `${where} · ${services.length.toLocaleString('en')} services, ${count.toLocaleString('en')} instances${more}`,
    );
    find('empty').hidden = services.length > 0;
    setText(find('empty'), `There are no services below ${about.path}.`);
  }

  #row(entry: ServiceEntry, path: string): RowCells {
    const { id, instance, text, sessionId, problem } = entry;
    const state = stateOf(entry);
    const quiet = (told: string) => make('span', { class: 'quiet' }, ` ${told}`);
    const type =
      instance && quiet(`${instance.serviceType}${sessionId === null ? '' : `, session ${sessionId}`}`);
    const cells = [
      [mark(MARKS[state]), ' ', make('b', {}, id), quiet(state)],
      [addressText(entry), type],
      [leaseText(entry)],
      [
        problem !== null && make('span', { class: 'bad' }, `It ${problem} `),
        text !== null && shownText(path, text),
      ],
      this.#model.about?.writes ? this.#tools(entry, path) : [],
    ];
    return { attributes: { 'data-state': state }, cells };
  }

  #tools(entry: ServiceEntry, path: string): Child[] {
    const tool = (act: Act) => {
      const attributes = {
        'aria-label': `${act} ${entry.service} ${entry.id}`,
        'data-key': `${act} ${path}`,
      };
      return button(attributes, () => void this.#change(act, entry), act);
    };
    const toggle = entry.instance && tool(entry.instance.state === 'disabled' ? 'Enable' : 'Disable');
    return [toggle, ' ', tool('Remove')];
  }

  async #change(act: Act, { service, id }: ServiceEntry): Promise<void> {
    if (act === 'Remove' && !confirm(`Remove ${service} ${id}? ${WARNING}`)) return;
    const path = `${API}/${encodeURIComponent(service)}/${encodeURIComponent(id ?? '')}`;
    const answer =
      act === 'Remove'
        ? this.#frame.change(path, { method: 'DELETE' })
        : this.#frame.change(`${path}/enabled`, { method: 'PUT', body: JSON.stringify(act === 'Enable') });
    setText(find('notice'), await answer);
  }
}

function folderOf(
  { service: { service, problem }, instances }: SeenService,
  isOpenAtFirst: boolean,
): Folder<ServiceEntry> {
  const heading = { title: service, note: '', problem, count: countText([...instances.values()]) };
  return { key: service, ...heading, rows: instances, more: 0, isOpenAtFirst };
}

/** Others' text: at once where it is short, else behind its beginning. */
function shownText(path: string, text: string): HTMLElement {
  if (text.length <= SHORT) return make('code', {}, text);
  const summary = make(
    'summary',
    { 'data-key': `text ${path}` },
    make('code', {}, `${text.slice(0, SHORT)}…`),
  );
  return make('details', {}, summary, make('code', {}, text));
}

new ServicesPage().start();
