export const oauthScopes = ['openid', 'profile', 'email', 'offline_access'] as const

/** A client may ask for these scopes, which allow more than reading; the choice on the consent page decides. */
export const actingScopes = ['trade', 'earn', 'chat', 'manage', 'propose'] as const
export type ActingScope = (typeof actingScopes)[number]

export const oauthPaths = {
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  register: '/oauth/register',
  jwks: '/oauth/jwks',
  revoke: '/oauth/revoke',
  introspect: '/oauth/introspect',
  userinfo: '/oauth/userinfo',
  /** Apps send the browser here, so that its session ends as well. */
  signOut: '/oauth/sign-out',
  interaction: '/oauth/interaction',
  account: '/oauth/account',
  link: '/oauth/account/link',
  /** An external identity provider sends browsers back to this path. */
  callback: '/oauth/callback',
  approvals: '/oauth/approvals',
} as const
