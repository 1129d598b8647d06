import { find } from './dom.js';

export interface KeyTargets {
  readonly filter: HTMLInputElement;
  /** Gives the focus to the grid. */
  readonly grid: () => void;
  /** Closes what is open, else takes the filter away. */
  readonly clear: () => void;
}

/** The keys that work everywhere on the page. Those of the grid are its own. */
export class Keyboard {
  readonly #help = find('help', HTMLDialogElement);

  constructor(private readonly targets: KeyTargets) {
    document.addEventListener('keydown', (event) => this.#key(event));
    find('help-open', HTMLButtonElement).addEventListener('click', () => this.#help.showModal());
    find('help-close', HTMLButtonElement).addEventListener('click', () => this.#help.close());
  }

  #key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey || document.querySelector('dialog[open]')) return;
    const { target, key } = event;
    const { filter, grid, clear } = this.targets;
    const isTyping = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
    if (key === 'Escape') clear();
    else if (target === filter && (key === 'Enter' || key === 'ArrowDown')) {
      // From the filter straight to what it has found.
      event.preventDefault();
      grid();
    } else if (!isTyping && key === '?') {
      event.preventDefault();
      this.#help.showModal();
    } else if (!isTyping && key === '/') {
      event.preventDefault();
      filter.focus();
      filter.select();
    }
  }
}

const KEY = 'nodelease-theme';
const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];

const TITLES: Readonly<Record<Theme, string>> = { system: 'as the system', light: 'light', dark: 'dark' };

/** Light, dark, or as the system has it; kept by the browser, where it keeps anything. */
export class ThemeSwitch {
  #theme: Theme = stored();

  constructor(private readonly button: HTMLButtonElement) {
    button.addEventListener('click', () => this.#next());
    this.#show();
  }

  #next(): void {
    this.#theme = THEMES[(THEMES.indexOf(this.#theme) + 1) % THEMES.length] ?? 'system';
    try {
      localStorage.setItem(KEY, this.#theme);
    } catch {
      // Not to be kept here: it lasts as long as the page.
    }
    this.#show();
  }

  #show(): void {
    const label = `Colours: ${TITLES[this.#theme]}`;
    document.documentElement.dataset.theme = this.#theme;
    this.button.setAttribute('aria-label', label);
    this.button.title = label;
  }
}

function stored(): Theme {
  try {
    const text = localStorage.getItem(KEY);
    return THEMES.find((theme) => theme === text) ?? 'system';
  } catch {
    return 'system';
  }
}
