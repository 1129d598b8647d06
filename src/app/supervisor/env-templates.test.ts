import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../core/base/errors.js';
import { parseEnvTemplates } from './env-templates.js';

const FACTS = { id: 3, version: 7, taskId: 'me', url: 'http://127.0.0.1:7070' };
const render = (...texts: string[]) =>
  parseEnvTemplates(texts, true).map(({ name, value }) => `${name}=${value(FACTS)}`);

describe('a variable made of what was acquired', () => {
  it('has each placeholder, as often as the text has it', () => {
    expect(render('ZEEBE_BROKER_CLUSTER_NODEID={id}')).toEqual(['ZEEBE_BROKER_CLUSTER_NODEID=3']);
    expect(render('A={id}-{id}/{version} {taskId} {url}/lease {clusterNodeId}')).toEqual([
      'A=3-3/7 me http://127.0.0.1:7070/lease 11',
    ]);
  });

  it('may be plain text, empty, or hold equals signs and what looks like a replacement pattern', () => {
    expect(render('A=', 'B=x=y', "C=$& $' {id}")).toEqual(['A=', 'B=x=y', "C=$& $' 3"]);
  });

  it('has single braces where doubled ones stand', () => {
    expect(render('A={{"id":{id}}}', 'B={{id}}', 'C={{{id}}}')).toEqual(['A={"id":3}', 'B={id}', 'C={3}']);
  });

  it('takes what a value holds as it is', () => {
    const [template] = parseEnvTemplates(['A={taskId}'], false);
    expect(template?.value({ ...FACTS, taskId: '{id}}' })).toBe('{id}}');
  });

  it.each([
    ['A', /--env: expected NAME=TEMPLATE with a name of letters, digits and _, got "…"/],
    ['=x', /with a name of letters/],
    ['1A=x', /with a name of letters/],
    ['A B=x', /with a name of letters/],
    ['NODE_ID=1', /with another name \(NODE_ID is set by nodelease itself\)/],
    ['NODE_PREVIOUS=a', /with another name \(NODE_PREVIOUS is set by nodelease itself\)/],
    ['NODE_DATA_DIR=/a', /with another name/],
    ['NODE_DATA_RESTORED=true', /with another name/],
    ['NODE_ID_VERSION=1', /with another name/],
    ['NODELEASE_URL=1', /with another name/],
    [
      'PATH=/opt/{id}',
      /with another name \(the command is found by the PATH of nodelease: set that\), got "PATH=…"/,
    ],
    ['A={nodeId}', /no placeholders but \{id\}, \{version\}, \{taskId\}, \{url\}, \{clusterNodeId\}/],
    ['A={}', /no placeholders but/],
    ['A={toString}', /no placeholders but/],
    ['A={', /with "\{\{" for a single "\{"/],
    ['A=x}', /with "\}\}" for a single "\}"/],
    ['A={id', /with "\{\{" for a single/],
  ])('is refused as %s', (text, expected) => {
    expect(() => parseEnvTemplates(['B=1', text], true)).toThrow(ConfigError);
    expect(() => parseEnvTemplates(['B=1', text], true)).toThrow(expected);
  });

  it.each([
    'hunter2',
    '1A=hunter2',
    'NODE_ID=hunter2',
    'PATH=hunter2',
    'A=hunter2{',
    'A=hunter2}',
    'A={hunter2}',
    'A={url}hunter2',
  ])('is refused without a word of its value, which may be a secret: %s', (text) => {
    const parse = () => parseEnvTemplates([text], false);
    expect(parse).toThrow(ConfigError);
    expect(parse).toThrow(/^(?!.*hunter2)--env: expected /);
  });

  it('is refused with {url} where nothing is listened at', () => {
    expect(() => parseEnvTemplates(['A={url}'], false)).toThrow(/--http with it/);
  });
});
