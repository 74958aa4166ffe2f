import { oauthPaths, oauthScopes } from '#edges/oauth/paths-and-scopes.ts'

/** One document serves RFC 8414 and OpenID Connect Discovery, and is written here so that it loads no provider. */
export function serverMetadata(base: string): Record<string, unknown> {
  const at = (path: string) => `${base}${path}`
  const methods = ['none', 'client_secret_basic', 'client_secret_post']
  return {
    issuer: base,
    authorization_endpoint: at(oauthPaths.authorize),
    token_endpoint: at(oauthPaths.token),
    registration_endpoint: at(oauthPaths.register),
    revocation_endpoint: at(oauthPaths.revoke),
    introspection_endpoint: at(oauthPaths.introspect),
    end_session_endpoint: at(oauthPaths.signOut),
    userinfo_endpoint: at(oauthPaths.userinfo),
    jwks_uri: at(oauthPaths.jwks),
    scopes_supported: oauthScopes,
    claims_supported: ['sub', 'email', 'email_verified', 'name', 'iss', 'auth_time', 'amr'],
    response_types_supported: ['code'],
    response_modes_supported: ['query', 'fragment', 'form_post'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
    token_endpoint_auth_methods_supported: methods,
    revocation_endpoint_auth_methods_supported: methods,
    introspection_endpoint_auth_methods_supported: methods,
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: true,
    claims_parameter_supported: false,
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
    protected_resources: [base, `${base}/mcp`],
    service_documentation: at('/docs'),
  }
}
