{{- /* SPDX-License-Identifier: Apache-2.0 */}}
{{- /* Names leave room for suffixes within 63 characters. */}}
{{- define "bivouac.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "bivouac.fullname" -}}
{{- $name := include "bivouac.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "bivouac.account" -}}
{{ .Values.serviceAccount.name | default (ternary (include "bivouac.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "bivouac.selector" -}}
app.kubernetes.io/name: {{ include "bivouac.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "bivouac.labels" -}}
{{ include "bivouac.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: bivouac
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "bivouac.image" -}}
{{- $repository := required "image.repository is empty: set it to where your registry keeps the bivouac image" .Values.image.repository }}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- /* The content of a generated file. A missing one must not pass as an empty one. */}}
{{- define "bivouac.generated" -}}
{{- $path := printf "generated/%s.yaml" .file }}
{{- required (printf "%s is missing: run `cargo xtask gen`" $path) (.root.Files.Get $path) }}
{{- end }}
