/** The package oidc-provider has no types; these cover the part that is used. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  export type Interaction = {
    uid: string
    prompt: { name: string; reasons: string[]; details: Record<string, unknown> }
    params: Record<string, unknown>
    session?: { uid: string; accountId: string }
    grantId?: string
    returnTo: string
    persist(): Promise<string>
  }
  export type Session = {
    uid: string
    accountId?: string
    /** When the person signed in, in seconds. */
    loginTs?: number
    /** Authorizations by client; this gateway stores `signedInTs`. */
    authorizations?: Record<string, { signedInTs?: number }>
    destroy(): Promise<void>
  }
  export type Client = {
    clientId: string
    clientName?: string
    applicationType: string
    clientIdMetadataDocument?: boolean
    postLogoutRedirectUriAllowed(uri: string): boolean
  }
  type GrantProperties = Pick<Grant, 'openid' | 'resources'> & { accountId: string; clientId: string }
  export type Grant = {
    openid?: object | undefined
    /** Scopes by resource, separated by spaces. */
    resources?: Record<string, string> | undefined
    addOIDCScope(scope: string): void
    addOIDCClaims(claims: string[]): void
    addResourceScope(resource: string, scope: string): void
    save(): Promise<string>
  }
  export type Context = {
    status: number
    type: string
    body: unknown
    /** The address of the client, as the headers that the gateway sets name it. */
    ip: string
    /** What the provider knows of the request; absent outside the routes of the provider. */
    oidc?: { route: string; client?: Client; params?: Record<string, unknown> }
  }
  export class Provider {
    /** The context of the request that is being answered. */
    static readonly ctx: Context | undefined
    constructor(issuer: string, configuration: Record<string, unknown>)
    proxy: boolean
    silent: boolean
    on(event: string, listener: (...given: never[]) => void): this
    use(middleware: (context: Context, next: () => Promise<void>) => Promise<void>): this
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionResult(
      request: IncomingMessage,
      response: ServerResponse,
      result: object,
      options: { mergeWithLastSubmission: boolean },
    ): Promise<string>
    createContext(request: IncomingMessage, response: ServerResponse): object
    readonly Session: {
      get(context: object): Promise<Session>
      findByUid(uid: string): Promise<Session | undefined>
    }
    readonly Client: { find(id: string): Promise<Client | undefined> }
    readonly Grant: {
      new (properties: GrantProperties): Grant
      find(id: string): Promise<Grant | undefined>
    }
  }
  export const interactionPolicy: {
    base(): { get(name: string): { checks: { remove(reason: string): void; add(check: object): void } } }
    Check: new (
      reason: string,
      description: string,
      error: string,
      check: (context: never) => boolean | Promise<boolean>,
    ) => object
  }
  export const errors: Record<
    | 'InvalidGrant'
    | 'InvalidTarget'
    | 'InvalidClientMetadata'
    | 'InvalidRequest'
    | 'SessionNotFound'
    | 'AccessDenied'
    | 'OIDCProviderError',
    new (
      ...given: string[]
    ) => Error
  >
}
