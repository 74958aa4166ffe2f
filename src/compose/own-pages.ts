import type { Config } from '#config.ts'

/** The addresses of this gateway's own pages for people. */
export type OwnPages = { account: string; approvals: string; link: string }

/** Undefined where nobody signs in, or where another server signs people in and issues the tokens. */
export const ownPages = ({ AUTH_MODE: mode }: Config, baseUrl: () => string): OwnPages | undefined =>
  mode === 'embedded' || mode === 'facade'
    ? {
        account: `${baseUrl()}/oauth/account`,
        approvals: `${baseUrl()}/oauth/approvals`,
        link: `${baseUrl()}/oauth/account/link`,
      }
    : undefined

/** Where a person decides about one request. */
export const approvalPage = (
  config: Config,
  baseUrl: () => string,
  approvalId: string,
): string | undefined => {
  const pages = ownPages(config, baseUrl)
  return pages && `${pages.approvals}/${approvalId}`
}
