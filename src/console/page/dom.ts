/** What an element has in it; what is not there is left out. */
export type Child = Node | string | false | null | undefined;
type Attributes = Readonly<Record<string, string>>;

/** A new element. All text goes in as text: nothing that a task calls itself can become markup. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) if (child) element.append(child);
  return element;
}

/** A new button, and what it does. */
export function button(
  attributes: Attributes,
  onClick: () => void,
  ...children: readonly Child[]
): HTMLButtonElement {
  const element = make('button', { type: 'button', ...attributes }, ...children);
  element.addEventListener('click', onClick);
  return element;
}

/**
 * The element of the page with this id.
 * @throws {Error} when the page is not the one that this code belongs to
 */
export function find(id: string): HTMLElement;
export function find<T extends HTMLElement>(id: string, type: abstract new () => T): T;
export function find(id: string, type: abstract new () => HTMLElement = HTMLElement): HTMLElement {
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

/**
 * The small sign of a state: a shape of its own for each, since not every reader sees colours. Hidden from
 * screen readers.
 */
export function mark(kind: string): HTMLElement {
  return make('i', { class: 'mark', 'data-mark': kind, 'aria-hidden': 'true' });
}

/** A sign and what it means. */
export function chip(kind: string, text: string): HTMLElement {
  return make('span', { class: 'chip' }, mark(kind), text);
}

/** The heading of a panel, and what stands beside it. */
export function title(text: string, ...beside: readonly Child[]): HTMLElement {
  return make('div', { class: 'panel-title' }, make('h2', {}, text), ...beside);
}

/** A paragraph that is no more than a note. */
export function quiet(...children: readonly Child[]): HTMLElement {
  return make('p', { class: 'quiet' }, ...children);
}

/** A fact for a description list. */
export function fact(term: string, ...value: readonly Child[]): HTMLElement {
  return make('div', { class: 'pair' }, make('dt', {}, term), make('dd', {}, ...value));
}
