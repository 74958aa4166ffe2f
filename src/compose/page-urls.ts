import type { Config } from '#config.ts'

/** The addresses of this gateway's own pages for people. */
export type OwnPages = { account: string; approvals: string; link: string }

/**
 * The gateway has no pages of its own where nobody signs in, or where another server issues the tokens and this gateway is
 * no client of it: then its pages can ask for no sign-in.
 */
export const ownPages = (
  { AUTH_MODE: mode, IDENTITY_CLIENT_ID: clientId }: Config,
  baseUrl: () => string,
): OwnPages | undefined =>
  mode === 'embedded' || mode === 'facade' || (mode === 'proxy' && clientId !== undefined)
    ? {
        account: `${baseUrl()}/oauth/account`,
        approvals: `${baseUrl()}/oauth/approvals`,
        link: `${baseUrl()}/oauth/account/link`,
      }
    : undefined

/**
 * Whether people get mails about their accounts. Each mail names a page of this gateway, and needs a service that
 * delivers it, so both must exist.
 */
export const hasMails = (config: Config): boolean =>
  ownPages(config, () => '') !== undefined &&
  (config.EMAIL_URL !== undefined || config.ENVIRONMENT === 'local')

/** The address of the page on which a person decides about one request. */
export const approvalPage = (
  config: Config,
  baseUrl: () => string,
  approvalId: string,
): string | undefined => {
  const pages = ownPages(config, baseUrl)
  return pages && `${pages.approvals}/${approvalId}`
}
