export const oauthScopes = ['openid', 'profile', 'email', 'offline_access'] as const

/** What a person may let an app do beyond reading. A client may ask for them; the choice on the consent page decides. */
export const actingScopes = ['trade', 'earn', 'manage'] as const
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
  /** Where an external identity provider sends browsers back to. */
  callback: '/oauth/callback',
} as const
