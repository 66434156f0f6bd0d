import { CommandError, exitCodes, parseFlags, type Command } from './command.ts'
import { install, installYaml, readManifests, renderInstall, type CertificateSource } from './manifests.ts'

const help = `Usage: sandgate manifests [FLAGS]

Prints the install as YAML, for 'kubectl apply -f -'.

  --image IMAGE            image of sandgate (default: this version's)
  --namespace NAME         namespace to install in (default ${install.namespace})
  --replicas N             replicas of the Deployment (default 2)
  --certificates SOURCE    managed (default), cert-manager, or secret=NAME for a TLS Secret that something else keeps
  --url URL                https://host:port of a gate that runs outside the cluster: no Deployment and no Service

Examples:
  sandgate manifests --image registry.example.com/sandgate:0.1.0 | kubectl apply -f -
  sandgate manifests --namespace sandboxes --certificates cert-manager
`

export const manifestsCommand: Command = {
  name: 'manifests',
  summary: 'Print the install as YAML.',
  help,
  async run(args) {
    const flags = parseFlags('manifests', args, {
      image: { type: 'string' },
      namespace: { type: 'string' },
      replicas: { type: 'string' },
      certificates: { type: 'string', default: 'managed' },
      url: { type: 'string' },
    })
    const objects = renderInstall(await readManifests(), {
      certificates: certificateSource(flags.certificates),
      ...(flags.image !== undefined && { image: imageName(flags.image) }),
      ...(flags.namespace !== undefined && { namespace: namespaceName(flags.namespace) }),
      ...(flags.replicas !== undefined && { replicas: replicaCount(flags.replicas) }),
      ...(flags.url !== undefined && { url: httpsUrl(flags.url) }),
    })
    process.stdout.write(installYaml(objects))
    return exitCodes.ok
  },
}

function certificateSource(value: string): CertificateSource {
  if (value === 'managed' || value === 'cert-manager') return { kind: value }
  const name = /^secret=(.+)$/.exec(value)?.[1]
  if (name !== undefined) return { kind: 'secret', name }
  throw wrong(`--certificates takes managed, cert-manager or secret=NAME, not '${value}'`)
}

function imageName(value: string): string {
  if (/^\S+$/.test(value)) return value
  throw wrong(`--image takes the name of an image, not '${value}'`)
}

function namespaceName(value: string): string {
  if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(value)) return value
  throw wrong(`--namespace takes lower-case letters, digits and '-', at most 63 characters, not '${value}'`)
}

function replicaCount(value: string): number {
  if (/^[1-9]\d*$/.test(value)) return Number(value)
  throw wrong(`--replicas takes a number from 1, not '${value}'`)
}

function httpsUrl(value: string): string {
  if (URL.canParse(value) && new URL(value).protocol === 'https:') return value
  throw wrong(`--url takes an https:// URL, not '${value}'`)
}

function wrong(problem: string): CommandError {
  return new CommandError(`${problem}. See 'sandgate manifests --help'.`, exitCodes.usage)
}
