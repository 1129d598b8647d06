import { ConfigError } from '../../core/base/errors.js';
import { clusterNodeIdOf } from '../../core/id/cluster-node-id.js';

/** What can be in braces in a template, and what takes its place. */
interface TemplateFacts {
  /** The node id. */
  readonly id: number;
  /** The fencing token. */
  readonly version: number;
  readonly taskId: string;
  /** Where this run answers over HTTP; undefined where it does not. */
  readonly url: string | undefined;
}

/** A variable of the command's environment, as it is made from the node id. */
export interface EnvTemplate {
  readonly name: string;
  readonly value: (facts: TemplateFacts) => string;
}

/** The variables that nodelease sets itself. */
export const OWN_VARIABLES = /^NODELEASE_|^NODE_(ID|ID_VERSION|PREVIOUS|DATA_DIR|DATA_RESTORED)$/;

const FORM = 'NAME=TEMPLATE';
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** A doubled brace, a placeholder, or a brace that is neither. */
const TOKEN = /\{\{|\}\}|\{([^{}]*)\}|[{}]/g;

/** What takes the place of each placeholder. */
const PLACEHOLDERS: Readonly<Record<string, (facts: TemplateFacts) => string | number | undefined>> = {
  id: ({ id }) => id,
  version: ({ version }) => version,
  taskId: ({ taskId }) => taskId,
  url: ({ url }) => url,
  clusterNodeId: ({ id }) => clusterNodeIdOf(id),
};
const KNOWN = Object.keys(PLACEHOLDERS).map((name) => `{${name}}`);

/**
 * Takes the values of `--env` apart: `NAME=TEMPLATE`, where a template is any text with `{id}`, `{version}`,
 * `{taskId}`, `{url}`, or `{clusterNodeId}` (8 + the node id, as unique ids have it) in it; `{{` and `}}`
 * stand for single braces.
 *
 * @param hasHttp whether there will be a `{url}`
 * @throws {ConfigError} naming the variable, and what is wrong: the form, a name that cannot be set here, an
 * unknown placeholder. It does not say what the value is, which may be a secret
 */
export function parseEnvTemplates(texts: readonly string[], hasHttp: boolean): EnvTemplate[] {
  return texts.map((text) => {
    const equals = text.indexOf('=');
    const name = text.slice(0, Math.max(0, equals));
    // Without an equals sign it may be a value whose name was forgotten.
    const refuse = (expected: string) => new ConfigError('--env', equals < 0 ? '…' : `${name}=…`, expected);
    if (!NAME.test(name)) throw refuse(`${FORM} with a name of letters, digits and _`);
    if (OWN_VARIABLES.test(name)) {
      throw refuse(`${FORM} with another name (${name} is set by nodelease itself)`);
    }
    // The command is looked up before there is a node id, and must not become another one by it.
    if (name === 'PATH')
      throw refuse(`${FORM} with another name (the command is found by the PATH of nodelease: set that)`);
    const template = text.slice(equals + 1);
    const value = (facts: TemplateFacts) =>
      template.replace(TOKEN, (token: string, name: string | undefined) => {
        if (name === undefined && token.length === 2) return token.slice(1);
        if (name === undefined) throw refuse(`${FORM} with "${token}${token}" for a single "${token}"`);
        if (!Object.hasOwn(PLACEHOLDERS, name))
          throw refuse(
            `${FORM} with no placeholders but ${KNOWN.join(', ')}; "{{" and "}}" stand for braces`,
          );
        const filled = PLACEHOLDERS[name]?.(facts);
        if (filled === undefined) throw refuse('--http with it, for there is no {url} without');
        return String(filled);
      });
    // What is wrong is known before there is a node id.
    value({ id: 0, version: 0, taskId: '', url: hasHttp ? '' : undefined });
    return { name, value };
  });
}
