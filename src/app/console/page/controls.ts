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
/** Each one is followed by the next one. `system` is what the system has. */
const THEMES = ['system', 'light', 'dark'];

/** The choice of colours, which the browser keeps. */
export function offerThemes(): void {
  const button = find('theme');
  let at = Math.max(0, THEMES.indexOf(storedTheme()));
  const show = () => {
    const theme = THEMES[at] ?? '';
    document.documentElement.dataset.theme = theme;
    button.title = `Colours: ${theme === 'system' ? 'as the system' : theme}`;
    button.setAttribute('aria-label', button.title);
    return theme;
  };
  button.addEventListener('click', () => {
    at = (at + 1) % THEMES.length;
    const theme = show();
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // It cannot be kept here, and is forgotten with the page.
    }
  });
  show();
}

function storedTheme(): string {
  try {
    return localStorage.getItem(KEY) ?? '';
  } catch {
    return '';
  }
}
