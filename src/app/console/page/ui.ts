import { Component, type ComponentChildren, h, type Key } from 'preact';

/** The sign of a state, with a shape for readers who see no colors. Hidden from screen readers. */
export const mark = (kind: string) => h('i', { class: 'mark', 'data-mark': kind, 'aria-hidden': 'true' });

/** A sign and what it means. */
export const chip = (kind: string, text: string) => h('span', { class: 'chip' }, mark(kind), text);

/** A part of a page: its heading, what is next to that, and its content. */
export const panel = (
  id: string,
  heading: string,
  tools: ComponentChildren,
  ...content: ComponentChildren[]
) =>
  h(
    'section',
    { class: `panel ${id}`, id, 'aria-label': heading },
    h('div', { class: 'panel-title' }, h('h2', null, heading), tools),
    content,
  );

/** A paragraph that is no more than a note. */
export const quiet = (...content: ComponentChildren[]) => h('p', { class: 'quiet' }, content);

/** The same within a line. */
export const note = (text: string) => h('span', { class: 'quiet' }, text);

/** A text about something that is wrong. */
export const bad = (...content: ComponentChildren[]) => h('span', { class: 'bad' }, content);

export const facts = (...content: ComponentChildren[]) => h('dl', { class: 'facts' }, content);

/** A fact of a description list. */
export const fact = (term: string, ...value: ComponentChildren[]) =>
  h('div', { class: 'pair' }, h('dt', null, term), h('dd', null, value));

/** A button that leads to a node id: the page listens for clicks on what has `data-node`. */
export const nodeButton = (id: number) =>
  h('button', { type: 'button', class: 'id-chip', 'aria-label': `Show node id ${id}`, 'data-node': id }, id);

/** A field for the text that things are filtered by; `/` leads to that of the whole page. */
export const search = (
  label: string,
  placeholder: string,
  value: string,
  onText: (text: string) => void,
  isOfPage = false,
) =>
  h(
    'label',
    { class: isOfPage ? 'filter' : undefined },
    h('span', { class: 'hidden-label' }, label),
    h('input', {
      id: isOfPage ? 'filter' : undefined,
      type: 'search',
      placeholder,
      autocomplete: 'off',
      spellcheck: false,
      value,
      onInput: ({ target }) => onText((target as HTMLInputElement).value),
    }),
    isOfPage && h('kbd', { 'aria-hidden': 'true' }, '/'),
  );

/** The value of an attribute that is there or not. */
export const flag = (isOn: boolean) => (isOn ? '' : undefined);

/** Draws again only when one of these values is another one. */
export const memo = (draw: () => ComponentChildren, on: readonly unknown[], key?: Key) =>
  h(Memo, { key, draw, on });

interface MemoProps {
  readonly draw: () => ComponentChildren;
  readonly on: readonly unknown[];
}

/** Not `useMemo`: what that keeps refers to the tree in which it was drawn, and so to every earlier one. */
class Memo extends Component<MemoProps> {
  override shouldComponentUpdate({ on }: MemoProps): boolean {
    return on.length !== this.props.on.length || on.some((value, at) => !Object.is(value, this.props.on[at]));
  }

  override render({ draw }: MemoProps): ComponentChildren {
    return draw();
  }
}

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
