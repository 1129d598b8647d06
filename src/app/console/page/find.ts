/**
 * The element of the page with this id.
 * @throws {Error} when the page is not the one that this code belongs to
 */
export function find<T extends HTMLElement = HTMLElement>(
  id: string,
  type: { new (): T } | typeof HTMLElement = HTMLElement,
): T {
  const element = document.getElementById(id);
  if (element instanceof type) return element as T;
  throw new Error(`the page has no ${type.name} with the id ${id}`);
}
