export const oauthScopes = ['openid', 'profile', 'email', 'offline_access'] as const

/** What a person may let an app do beyond reading. A client may ask for them; the choice on the consent page decides. */
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
  interaction: '/oauth/interaction',
  account: '/oauth/account',
  /** Where people link an agent by its code. */
  link: '/oauth/account/link',
  /** Where an external identity provider sends browsers back to. */
  callback: '/oauth/callback',
  /** Where people decide about requests of agents. */
  approvals: '/oauth/approvals',
} as const
