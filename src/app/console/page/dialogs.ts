import { find } from './find.js';

/**
 * Asks the reader in a dialog.
 *
 * @param act what the button says that confirms it
 * @param value the text that the reader may change; none without it
 * @returns the text, or undefined where the reader gives up
 */
export async function question(title: string, text: string, act: string, value?: string) {
  const dialog = find('question', HTMLDialogElement);
  const input = find('question-input', HTMLInputElement);
  for (const [part, content] of Object.entries({ title, text, act }))
    find(`question-${part}`).textContent = content;
  find('question-label').hidden = value === undefined;
  input.value = value ?? '';
  return (await opened(dialog)) && input.value;
}

/**
 * Asks the reader for the bearer token that the server wants. Resolves to undefined when the reader closes
 * the dialog without one.
 *
 * @param refused there was a token, and it was not the right one
 */
export function askForToken(refused: boolean): Promise<string | undefined> {
  const dialog = find('token', HTMLDialogElement);
  const input = find('token-input', HTMLInputElement);
  const complain = (text: string) => {
    find('token-problem').textContent = text;
    input.setAttribute('aria-invalid', String(text !== ''));
  };
  find('token-form').onsubmit = (event) => {
    event.preventDefault();
    const token = input.value.trim();
    if (!/^[\x21-\x7e]+$/.test(token)) return complain('A token has visible ASCII characters and no spaces.');
    input.value = '';
    dialog.close(token);
  };
  complain(refused ? 'That is not the right token.' : '');
  const answer = opened(dialog);
  input.focus();
  return answer;
}

/** Opens a dialog. Resolves to its answer when it is closed; undefined where the reader gives up. */
async function opened(dialog: HTMLDialogElement): Promise<string | undefined> {
  dialog.returnValue = '';
  if (!dialog.open) dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
  return dialog.returnValue || undefined;
}
