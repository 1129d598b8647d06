// The site: the pages of docs, and those of the root and of infra that they link to. `vitepress build` fails on a dead link.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** The parts with their pages in reading order. A page that is not named follows the named ones. */
const PARTS = [
  ['Start', 'start', ['tutorial', 'concepts', 'is-it-for-me']],
  [
    'Guides',
    'guides',
    [
      'node-ids',
      'one-at-a-time',
      'shards',
      'unique-ids',
      'library',
      'ecs',
      'stores',
      'data-directories',
      'by-program',
    ],
  ],
  ['ZooKeeper', 'zookeeper', ['index', 'discovery', 'services', 'recipes', 'configuration', 'shared-data']],
  [
    'Operate',
    'operate',
    ['checklist', 'operations', 'runbook', 'failure-table', 'http', 'metrics', 'console', 'costs'],
  ],
  ['Reference', 'reference', ['commands', 'settings', 'glossary', 'figures']],
  ['Design', 'design', ['safety', 'protocol']],
];

/** Pages outside docs that are part of the site. */
const OTHERS = ['CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'infra/README.md'];

const titleOf = (page) => /^# (.*)$/m.exec(readFileSync(join(root, page), 'utf8'))?.[1] ?? page;

function pagesOf(folder, first) {
  const names = readdirSync(join(root, 'docs', folder)).flatMap((file) =>
    file.endsWith('.md') ? [file.slice(0, -3)] : [],
  );
  const place = (name) => first.indexOf(name) + 1 || first.length + 1;
  return names
    .sort((a, b) => place(a) - place(b) || a.localeCompare(b))
    .map((name) => `docs/${folder}/${name}.md`);
}

const parts = PARTS.map(([text, folder, first]) => ({ text, pages: pagesOf(folder, first) }));
const linkOf = (page) => `/${page.replace(/^docs\//, '').replace(/(?:index)?\.md$/, '')}`;

/** What a page links to and the site does not have, is in the repository, where it is known: `https://HOST/OWNER/NAME/blob/main/`. */
const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env;
const repository = GITHUB_REPOSITORY === undefined ? undefined : `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`;

/** A link as the site has it, or nothing. */
function siteLink(href, page) {
  if (/^[a-z]+:|^[#/]/.test(href)) return href;
  const [path, anchor] = href.split('#');
  const file = join(dirname(page), path);
  if (OTHERS.includes(file)) return anchor === undefined ? `/${file}` : `/${file}#${anchor}`;
  if (/^docs\/(?!api\/|site\/)/.test(file) || !existsSync(join(root, file))) return href;
  return repository === undefined ? undefined : `${repository}/blob/main/${file}`;
}

/** Markdown as it is: braces in code are no templates of Vue, and there are no links to files that the site does not have. */
function plainPages(md) {
  md.renderer.rules.code_inline = (tokens, index) =>
    `<code v-pre>${md.utils.escapeHtml(tokens[index].content)}</code>`;
  md.core.ruler.push('other-files', ({ tokens, env }) => {
    // A heading without a text is none.
    tokens.forEach((token, index) => {
      if (token.type !== 'th_open' || tokens[index + 1]?.content !== '') return;
      for (const end of [token, tokens[index + 2]]) end.tag = 'td';
    });
    for (const { children } of tokens) {
      for (const token of children ?? []) {
        if (token.type !== 'link_open') continue;
        const href = siteLink(token.attrGet('href'), relative(root, env.realPath ?? env.path));
        if (href === undefined) {
          token.tag = 'span';
          token.attrs = [];
          children.slice(children.indexOf(token)).find(({ type }) => type === 'link_close').tag = 'span';
        } else token.attrSet('href', href);
      }
    }
  });
}

/** llmstxt.org: a list of the pages with what each is for, and all of them as one text. */
function writeTexts(folder) {
  const all = parts.flatMap(({ pages }) => pages);
  const paragraph = (page) =>
    readFileSync(join(root, page), 'utf8').split('\n\n')[1]?.replaceAll('\n', ' ') ?? '';
  const sections = parts.map(({ text, pages }) => {
    const lines = pages.map((page) => `- [${titleOf(page)}](${linkOf(page)}): ${paragraph(page)}`);
    return `## ${text}\n\n${lines.join('\n')}\n`;
  });
  const { description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  writeFileSync(join(folder, 'llms.txt'), [`# nodelease\n\n> ${description}\n`, ...sections].join('\n'));
  writeFileSync(
    join(folder, 'llms-full.txt'),
    all.map((page) => readFileSync(join(root, page), 'utf8')).join('\n'),
  );
}

export default {
  title: 'nodelease',
  description: 'Small, unique, fenced node ids for containers',
  // Where it is published, such as `/nodelease/`.
  base: process.env.DOCS_BASE ?? '/',
  srcDir: '../..',
  srcExclude: [
    'README.md',
    'docs/api/**',
    'examples/**',
    'src/**',
    'test/**',
    '.harness/**',
    'dist/**',
    'infra/*/**',
    'lint/**',
  ],
  outDir: 'html',
  cacheDir: 'node_modules/.vitepress',
  rewrites: { 'docs/:page*': ':page*' },
  cleanUrls: true,
  head: [
    ['link', { rel: 'icon', href: 'data:,' }],
    // Its usual color has too little contrast.
    ['style', {}, '.vp-doc [class*="language-"] > span.lang { color: var(--vp-c-text-2) }'],
  ],
  markdown: {
    config: plainPages,
    // As GitHub does: the pages are read there, too.
    anchor: {
      slugify: (text) =>
        text
          .toLowerCase()
          .replace(/[^\p{L}\p{N} _-]/gu, '')
          .trim()
          .replaceAll(' ', '-'),
    },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  // The API has pages of its own generator.
  ignoreDeadLinks: [/^\/api\//],
  buildEnd: ({ outDir }) => writeTexts(outDir),
  themeConfig: {
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          // A name such as NODELEASE_STORE is one word.
          options: { tokenize: (text) => text.split(/[^\p{L}\p{N}_-]+/u) },
          // Long tables, which would come last, have what a name means.
          searchOptions: { boostDocument: (page) => (page.includes('/reference/') ? 4 : 1) },
        },
      },
    },
    nav: [
      ...parts.map(({ text, pages }) => ({
        text,
        link: linkOf(pages[0]),
        activeMatch: `^/${pages[0].split('/')[1]}/`,
      })),
      { text: 'API', link: '/api/index.html', target: '_self' },
    ],
    sidebar: parts.map(({ text, pages }) => ({
      text,
      items: pages.map((page) => ({ text: titleOf(page), link: linkOf(page) })),
    })),
    outline: [2, 3],
  },
};
