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
  dialog.returnValue = '';
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
  return dialog.returnValue === '' ? undefined : input.value;
}
