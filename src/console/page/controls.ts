import { find } from './find.js';

/**
 * The keys that work everywhere on the page, and the help about them; the grid has more.
 *
 * @param focusFound gives the focus to what the filter has found
 * @param onEscape closes what is open, else clears the filter
 */
export function listenToKeys(focusFound: () => void, onEscape: () => void): void {
  const help = find('help', HTMLDialogElement);
  find('help-open').addEventListener('click', () => help.showModal());
  find('help-close').addEventListener('click', () => help.close());
  document.addEventListener('keydown', (event) => {
    const { target, key } = event;
    const filter = find('filter', HTMLInputElement);
    if (event.altKey || event.ctrlKey || event.metaKey || document.querySelector('dialog[open]')) return;
    if (key === 'Escape') return onEscape();
    const isTyping = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
    // From the filter straight to what it has found.
    if (target === filter && (key === 'Enter' || key === 'ArrowDown')) focusFound();
    else if (!isTyping && key === '?') help.showModal();
    else if (!isTyping && key === '/') {
      filter.focus();
      filter.select();
    } else return;
    event.preventDefault();
  });
}

const KEY = 'nodelease-theme';
const TITLES = { system: 'as the system', light: 'light', dark: 'dark' } as const;
type Theme = keyof typeof TITLES;
const NEXT: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' };

/** Light, dark, or as the system has it; kept by the browser, where it keeps anything. */
export function offerThemes(): void {
  const button = find('theme');
  let theme = storedTheme();
  const show = () => {
    document.documentElement.dataset.theme = theme;
    button.title = `Colours: ${TITLES[theme]}`;
    button.setAttribute('aria-label', button.title);
  };
  button.addEventListener('click', () => {
    theme = NEXT[theme];
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // It cannot be kept here, and is forgotten with the page.
    }
    show();
  });
  show();
}

function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(KEY);
    return stored === 'light' || stored === 'dark' ? stored : 'system';
  } catch {
    return 'system';
  }
}
