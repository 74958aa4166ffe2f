/** The part of oidc-provider that is used; the package carries no types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  export type Interaction = {
    uid: string
    prompt: { name: string; reasons: string[]; details: Record<string, unknown> }
    params: Record<string, unknown>
    session?: { accountId: string }
    grantId?: string
    returnTo: string
    persist(): Promise<string>
  }
  export type Client = {
    clientId: string
    clientName?: string
    applicationType: string
    clientIdMetadataDocument?: boolean
  }
  export type Grant = {
    /** Scopes by resource, separated by spaces. */
    resources?: Record<string, string>
    addOIDCScope(scope: string): void
    addOIDCClaims(claims: string[]): void
    addResourceScope(resource: string, scope: string): void
    save(): Promise<string>
  }
  type Context = {
    type: string
    status: number
    body: unknown
    set(name: string, value: string): void
    oidc: { client?: Client; uid?: string }
  }
  export class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>)
    proxy: boolean
    silent: boolean
    on(event: string, listener: (...given: never[]) => void): this
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionResult(
      request: IncomingMessage,
      response: ServerResponse,
      result: object,
      options: { mergeWithLastSubmission: boolean },
    ): Promise<string>
    readonly Client: { find(id: string): Promise<Client | undefined> }
    readonly Grant: {
      new (properties: { accountId: string; clientId: string }): Grant
      find(id: string): Promise<Grant | undefined>
    }
  }
  export const errors: Record<
    | 'InvalidGrant'
    | 'InvalidTarget'
    | 'InvalidClientMetadata'
    | 'SessionNotFound'
    | 'AccessDenied'
    | 'OIDCProviderError',
    new (
      ...given: string[]
    ) => Error
  >
}
