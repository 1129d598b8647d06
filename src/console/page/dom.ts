/** What an element is made of. */
interface Parts {
  readonly class?: string;
  readonly text?: string;
  readonly attributes?: Readonly<Record<string, string>>;
  readonly onClick?: () => void;
}

/** A new element. All text goes in as text: nothing that a task calls itself can become markup. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  parts: Parts = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (parts.class !== undefined) element.className = parts.class;
  if (parts.text !== undefined) element.textContent = parts.text;
  for (const [name, value] of Object.entries(parts.attributes ?? {})) element.setAttribute(name, value);
  const { onClick } = parts;
  if (onClick) element.addEventListener('click', onClick);
  element.append(...children);
  return element;
}

/**
 * The element of the page with this id.
 *
 * @throws {Error} when the page is not the one that this code belongs to
 */
export function find<T extends HTMLElement>(id: string, type: abstract new () => T): T {
  const element = document.getElementById(id);
  if (element instanceof type) return element;
  throw new Error(`the page has no ${type.name} with the id ${id}`);
}

/** Sets a text only where it is another one: writing the same one again costs a layout. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets a data attribute, or takes it away. */
export function setData(element: HTMLElement, name: string, value: string | undefined): void {
  if (value === undefined) delete element.dataset[name];
  else if (element.dataset[name] !== value) element.dataset[name] = value;
}

/** The small sign of a state: a shape of its own for each, since not every reader sees colours. Hidden from screen readers. */
export function mark(kind: string): HTMLElement {
  return make('i', { class: 'mark', attributes: { 'data-mark': kind, 'aria-hidden': 'true' } });
}

/** A pair for a description list. */
export function pair(term: string, ...value: readonly (Node | string)[]): HTMLElement {
  return make('div', { class: 'pair' }, make('dt', { text: term }), make('dd', {}, ...value));
}
