import { find } from './dom.js';

/** Asks for the bearer token that the server wants. It is kept nowhere but in the page's memory. */
export class TokenDialog {
  readonly #dialog = find('token', HTMLDialogElement);
  readonly #input = find('token-input', HTMLInputElement);
  readonly #problem = find('token-problem', HTMLElement);

  constructor(onToken: (token: string) => void) {
    find('token-form', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      const token = this.#input.value.trim();
      if (!/^[\x21-\x7e]+$/.test(token)) return this.#complain('A token has visible ASCII characters and no spaces.');
      this.#input.value = '';
      this.#dialog.close();
      onToken(token);
    });
  }

  /** @param refused there was a token, and it was not the right one */
  ask(refused: boolean): void {
    this.#complain(refused ? 'That is not the right token.' : '');
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#input.focus();
  }

  open(): void {
    this.ask(false);
  }

  #complain(text: string): void {
    this.#problem.textContent = text;
    this.#input.setAttribute('aria-invalid', String(text !== ''));
  }
}
