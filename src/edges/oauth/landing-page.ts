import { rowOf, softLine } from './account/account-html.ts'
import { escapeHtml, page, pageHeaders } from './pages.ts'
import { oauthPaths } from './paths-and-scopes.ts'

type Landing = { baseUrl: string; version: string; isLocal: boolean; hasPages: boolean }

const link = (path: string, text: string): string => `<a href="${path}">${text}</a>`

/** A person who opens the address of the gateway gets this page. */
export function landingPage({ baseUrl, version, isLocal, hasPages }: Landing): string {
  const rows = [
    ...(hasPages
      ? [
          rowOf({
            title: link(oauthPaths.account, 'Your account'),
            lines: [
              softLine('Sign in or sign up; see your money, your limits, and what apps and agents did.'),
            ],
          }),
        ]
      : []),
    rowOf({
      title: 'Connect a model',
      lines: [
        `<span class="mono small">${escapeHtml(`${baseUrl}/mcp`)}</span>`,
        softLine(
          hasPages
            ? 'Give this address to a client of the Model Context Protocol: it signs you in.'
            : 'Give this address and a key to a client of the Model Context Protocol.',
        ),
      ],
    }),
    rowOf({
      title: link('/docs', 'Build on it'),
      lines: [
        softLine(
          `The reference of every operation. For programs: ${link('/openapi.json', 'OpenAPI')}, ${link('/llms.txt', 'llms.txt')}, ${link('/capabilities', 'capabilities')}, ${link('/health', 'health')}.`,
        ),
      ],
    }),
  ]
  const world = isLocal
    ? '<p class="notice">This is a local world: its chains, venues, prices and money are simulated on one machine, and nothing here is worth anything.</p>'
    : ''
  return page(
    'Gateway',
    `<h1>A trading and research gateway for agents and people</h1><p class="soft">Release ${escapeHtml(version)}</p>${world}<ul class="rows first">${rows.join('')}</ul>`,
    { isWide: true },
  )
}
export const landingHeaders = (): Record<string, string> => ({
  ...pageHeaders(),
  'cache-control': 'public, max-age=3600',
})
