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
