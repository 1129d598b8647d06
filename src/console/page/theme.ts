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
