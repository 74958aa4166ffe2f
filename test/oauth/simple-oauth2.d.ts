/** The package simple-oauth2 has no types; these cover the part that is used. */
declare module 'simple-oauth2' {
  export type AccessToken = {
    token: Record<string, unknown>
    refresh(): Promise<AccessToken>
    revoke(kind: 'access_token' | 'refresh_token'): Promise<unknown>
    revokeAll(): Promise<void>
  }
  export class AuthorizationCode {
    constructor(settings: {
      client: { id: string; secret: string }
      auth: { tokenHost: string; tokenPath: string; revokePath: string; authorizePath: string }
      options: { authorizationMethod: 'body' | 'header' }
    })
    authorizeURL(fields: Record<string, string | readonly string[]>): string
    getToken(fields: Record<string, string>): Promise<AccessToken>
  }
}
